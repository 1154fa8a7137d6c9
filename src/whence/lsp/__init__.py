"""What editors ask about programs. `document` has the answers, `server` speaks the protocol."""

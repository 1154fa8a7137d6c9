// Before anything is drawn: the colours that the viewer chose, if any were chosen.
try {
  const chosen = localStorage.getItem("whence-theme");
  if (chosen) document.documentElement.dataset.theme = chosen;
} catch (error) {
  // Without storage the colours of the system are used.
}

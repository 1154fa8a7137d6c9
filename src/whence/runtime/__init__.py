"""A network in one process: nodes that react to messages and timers, channels, faults and clocks, and what it all costs."""

from whence.runtime.channels import Channel, Wiring
from whence.runtime.figures import Figures, Size
from whence.runtime.process import Address, Message, Port, Process
from whence.runtime.proxy import Proxy
from whence.runtime.simulation import Delivery, Simulation
from whence.runtime.termination import Diffusion, Signal, Start

__all__ = [
    "Address",
    "Channel",
    "Delivery",
    "Diffusion",
    "Figures",
    "Message",
    "Port",
    "Process",
    "Proxy",
    "Signal",
    "Simulation",
    "Size",
    "Start",
    "Wiring",
]

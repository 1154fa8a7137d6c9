"""Programs on fields of sensors: tuples are stored along one way through the field and look for partners along another."""

from whence.runtime.energy import Energy, Radio
from whence.sensors.network import Compared, Moment, SensorNetwork
from whence.sensors.regions import Region
from whence.sensors.rules import NotForSensors
from whence.sensors.translate import Choices, Scheme, SensorProgram, translate
from whence.topology.field import Field, FieldError

__all__ = [
    "Choices",
    "Compared",
    "Energy",
    "Field",
    "FieldError",
    "Moment",
    "NotForSensors",
    "Radio",
    "Region",
    "Scheme",
    "SensorNetwork",
    "SensorProgram",
    "translate",
]

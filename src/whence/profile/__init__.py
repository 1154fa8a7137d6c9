"""What each rule of a program costs, told as a table, as JSON and as a page, the hint that matters first."""

from whence.engine.profile import Profile
from whence.profile.page import to_html
from whence.profile.report import Report, report
from whence.profile.table import to_text
from whence.profile.to_json import to_json

__all__ = ["Profile", "Report", "report", "to_html", "to_json", "to_text"]

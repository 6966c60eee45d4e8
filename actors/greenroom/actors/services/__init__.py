"""Services for programs that embed Greenroom: Python objects in and out, on the actors behind the tools."""

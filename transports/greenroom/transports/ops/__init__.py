"""Operation of a server: the command line and the control socket."""

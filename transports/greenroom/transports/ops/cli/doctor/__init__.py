"""`greenroom doctor`: finds problems of a folder, a machine or a client, and changes nothing."""

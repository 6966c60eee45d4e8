"""`greenroom doctor`: problems of a folder, a machine or a client, found without any change."""

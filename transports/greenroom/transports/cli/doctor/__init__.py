"""`greenroom doctor`: what may be wrong with a folder, a machine or a client, found without any change."""

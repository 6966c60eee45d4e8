/* greenroom console, built from df011f41393b1d6c; with licenses.txt */

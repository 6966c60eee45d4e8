/* greenroom console, built from 35535998fd323363; with licenses.txt */

/* greenroom console, built from 657d37d5bfd133c4; with licenses.txt */

/* greenroom console, built from fb1be0c77732d323; with licenses.txt */

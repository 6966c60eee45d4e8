/* greenroom console, built from 1fb577c7a283c1ab; with licenses.txt */

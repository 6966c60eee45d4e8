// The script of the map.

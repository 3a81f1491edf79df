// Command hookglass is the server, its administration and its client in one binary.
package main

func main() {}

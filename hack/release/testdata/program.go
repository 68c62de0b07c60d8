// Command program stands for the programs of a release in tests.
package main

func main() { println("hello") }

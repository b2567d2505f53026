// Command penstock is the gateway and its tools.
package main

import "github.com/penstock/penstock/cmd/penstock/app"

// version is set by the build.
var version = "dev"

func main() { app.Main(version) }

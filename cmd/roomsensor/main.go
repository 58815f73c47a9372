// Command roomsensor is every process of the service, a subcommand each: the
// API, the receiver and worker of uploads, migrations, and what operators do.
package main

import (
	"context"
	"os"
)

func main() {
	os.Exit(run(context.Background(), os.Args[1:], os.Getenv, os.Stdin, os.Stdout, os.Stderr))
}

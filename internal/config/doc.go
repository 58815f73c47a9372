// Package config is what a process is told from outside: flags, each with an
// environment variable of the same name, their defaults and their rules. The
// commands embed its structs.
package config

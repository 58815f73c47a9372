package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"roomsensor/internal/admin"
	"roomsensor/internal/admin/doctor"
	"roomsensor/internal/admin/support"
	"roomsensor/internal/cli"
	"roomsensor/internal/config"
	"roomsensor/internal/process"
)

type supportBundleCmd struct {
	doctorCmd
	File    string   `default:"roomsensor-support.tar.gz" help:"File to write. It must not exist." placeholder:"FILE" short:"f"`
	Process []string `default:"127.0.0.1:9080,127.0.0.1:9081,127.0.0.1:9082,127.0.0.1:9083,127.0.0.1:9084,127.0.0.1:9085" help:"Ops addresses of the processes, HOST:PORT." placeholder:"ADDRESS,..."`
	Log     []string `help:"Log of a process, of which the last 4 MiB are taken; - is standard input. Can be repeated." placeholder:"FILE" sep:"none"`
}

// reports returns the commands whose results are in the bundle.
func (c *supportBundleCmd) reports() map[string]func(context.Context) (any, error) {
	return map[string]func(context.Context) (any, error){
		"doctor":     func(ctx context.Context) (any, error) { return doctor.Diagnose(ctx, c.Database, c.options()) },
		"migrations": func(ctx context.Context) (any, error) { return admin.MigrationStatus(ctx, c.Database) },
		"stream": func(ctx context.Context) (any, error) {
			o, err := admin.Open(ctx, c.Database)
			if err != nil {
				return nil, err
			}
			defer o.Close()
			return o.StreamStatus(ctx, c.Queue, config.Defaults[config.Stream](), c.Retention)
		},
	}
}

// Run writes the bundle and prints what is in it.
func (c *supportBundleCmd) Run(ctx context.Context, t *cli.Terminal) error {
	settings, err := t.Settings()
	if err != nil {
		return err
	}
	err = cmp.Or(c.Database.Validate(), c.Standbys.Validate(), c.Queue.Validate(), c.Retention.Validate())
	if err != nil {
		return err
	}
	o := support.Options{
		Version: t.Version, Settings: settings, Reports: c.reports(), Processes: c.Process, Logs: map[string]io.Reader{},
	}
	for i, path := range c.Log {
		if path == "-" {
			o.Logs["stdin"] = t.Stdin
			continue
		}
		log, err := os.Open(path) //nolint:gosec // The operator chooses the file.
		if err != nil {
			return cli.Usagef("--log cannot be read: %v.", err)
		}
		defer func() { _ = log.Close() }()
		o.Logs[fmt.Sprintf("%d-%s", i+1, filepath.Base(path))] = log
	}
	file, err := os.OpenFile(c.File, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return process.Refusef("The bundle cannot be written. Give another --file: %v", err)
	}
	parts, err := support.Write(ctx, file, c.Database, o)
	if err = cmp.Or(err, file.Close()); err != nil {
		_ = os.Remove(c.File) // It is not complete.
		return err
	}
	return t.Print(c.Format, support.Contents{File: c.File, Data: parts})
}

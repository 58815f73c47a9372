package clientcmd

import (
	"context"
	"fmt"

	"roomsensor/client"
	"roomsensor/client/export"
	"roomsensor/internal/cli"
	"roomsensor/internal/config"
)

type exportCheckCmd struct {
	config.Client
	cli.Format
	File string `arg:"" help:"File that export wrote. FILE.request.json must be beside it."`
}

// exitChanged is the exit code for a file that is not exact any more.
const exitChanged = 3

// Help returns the part of --help about what it does.
func (*exportCheckCmd) Help() string {
	return `The exit code is 0 if the service would still return the same bytes, and 3 if not: late readings arrived, ` +
		`or a device or an assignment was renamed. Then the command lists the days of devices with readings that were ` +
		`stored since the export began. The change feed has those of the last 30 days.`
}

// Run checks a file.
func (c *exportCheckCmd) Run(ctx context.Context, t *cli.Terminal) error {
	api, shut, err := connect(t, c.Client)
	if err != nil {
		return err
	}
	defer shut()
	result, err := export.Check(ctx, api, c.File)
	if err != nil {
		return explain(ctx, c.Client, refused(err))
	}
	if err := t.Print(c.Format, result); err != nil || result.Exact {
		return err
	}
	return cli.ExitError(exitChanged)
}

// isExact reports whether the output has what the service would return for a request, and prints that or what changed.
func (c *exportCmd) isExact(
	ctx context.Context, t *cli.Terminal, api *client.Client, request *export.Request,
) (bool, error) {
	same, err := export.IsOf(c.Output, request)
	if err != nil || !same {
		return false, explain(ctx, c.Client, refused(err))
	}
	result, err := export.Check(ctx, api, c.Output)
	if err != nil {
		return false, explain(ctx, c.Client, refused(err))
	}
	if result.Exact {
		return true, t.Print(cli.Format{Output: "auto"}, result)
	}
	for _, d := range result.Days {
		_, _ = fmt.Fprintf(t.Stderr, "changed: %s, %s, readings: %d\n", d.Day, d.DeviceID, d.Readings)
	}
	return false, nil
}

package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/alecthomas/kong"

	"roomsensor/internal/config"
)

// usageError is a value that a command cannot work with, however the world is.
type usageError string

func (e usageError) Error() string { return string(e) }

func usagef(format string, args ...any) error { return usageError(fmt.Sprintf(format, args...)) }

// isUsage reports whether the command line, not the world, is at fault.
func isUsage(err error) bool {
	_, unparsed := errors.AsType[*kong.ParseError](err)
	_, senseless := errors.AsType[usageError](err)
	_, unusable := errors.AsType[*config.ValueError](err)
	return unparsed || senseless || unusable
}

// explained leaves out what the parser puts before a problem of the
// configuration, which names its flag itself, and names the variable beside a
// setting's flag.
func explained(err error) error {
	if problem, ok := errors.AsType[*config.ValueError](err); ok {
		return problem
	}
	parse, ok := errors.AsType[*kong.ParseError](err)
	if !ok {
		return err
	}
	for _, flag := range parse.Context.Flags() {
		rest, found := strings.CutPrefix(parse.Error(), "--"+flag.Name)
		if found && flag.Tag.Has(settingTag) && strings.IndexAny(rest, ": ") == 0 {
			return usagef("--%s (%s)%s", flag.Name, config.Variable(flag.Name), rest)
		}
	}
	return err
}

// errHelpShown ends a command line that asked for help.
var errHelpShown = errors.New("help was shown")

// helpFlag shows the help of the command that it stands behind.
type helpFlag bool

// BeforeReset is called once the command is known and before anything is required.
func (helpFlag) BeforeReset(command *kong.Context) error {
	if err := command.PrintUsage(false); err != nil {
		return fmt.Errorf("showing help: %w", err)
	}
	return errHelpShown
}

// settingTag marks the flags that have an environment variable of the same name.
const settingTag = "setting"

// environment gives settings their value from the environment; a flag on the
// command line wins. An empty variable counts as none.
func (t *terminal) environment() kong.Resolver {
	return kong.ResolverFunc(func(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
		if !flag.Tag.Has(settingTag) {
			return nil, nil
		}
		if value := t.getenv(config.Variable(flag.Name)); value != "" {
			return value, nil
		}
		return nil, nil
	})
}

// describe adds to the help of a flag its default and, where it is a setting,
// its variable.
func describe(value *kong.Value) string {
	var more []string
	if value.HasDefault && !value.IsBool() {
		more = append(more, "default "+value.Default)
	}
	if value.Tag.Has(settingTag) {
		more = append(more, "$"+config.Variable(value.Name))
	}
	if len(more) == 0 {
		return value.Help
	}
	return strings.TrimSuffix(value.Help, ".") + " (" + strings.Join(more, ", ") + ")."
}

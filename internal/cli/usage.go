package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/alecthomas/kong"

	"roomsensor/internal/config"
)

// The tags of flags beside those of kong.
const (
	// settingTag marks a flag that can also be set by an environment variable with its name.
	settingTag = "setting"
	// ImpliedTag describes the default of a flag whose value is computed if it is not given.
	ImpliedTag = "implied"
)

// UsageError is an invalid value or combination of flags.
type UsageError string

func (e UsageError) Error() string { return string(e) }

// Usagef returns a UsageError.
func Usagef(format string, args ...any) error { return UsageError(fmt.Sprintf(format, args...)) }

// isUsage reports whether an error is a usage error: the parser, a command or the configuration refused a value.
func isUsage(err error) bool {
	_, parse := errors.AsType[*kong.ParseError](err)
	_, usage := errors.AsType[UsageError](err)
	_, value := errors.AsType[*config.ValueError](err)
	return parse || usage || value
}

// usageMessage rewrites an error of the parser: it removes the prefix of a ValueError, which names its flag itself, and
// adds the environment variable to the name of a setting's flag.
func usageMessage(err error) error {
	if value, ok := errors.AsType[*config.ValueError](err); ok {
		return value
	}
	parse, ok := errors.AsType[*kong.ParseError](err)
	if !ok {
		return err
	}
	if word, ok := strings.CutPrefix(parse.Error(), "unknown flag "); ok {
		word, _, _ = strings.Cut(word, ",") // What follows is a suggestion.
		return unknownFlag(parse, word)
	}
	for _, flag := range parse.Context.Flags() {
		rest, found := strings.CutPrefix(parse.Error(), "--"+flag.Name)
		if found && flag.Tag.Has(settingTag) && strings.IndexAny(rest, ": ") == 0 {
			return Usagef("--%s (%s)%s", flag.Name, config.Variable(flag.Name), rest)
		}
	}
	return err
}

// unknownFlag returns the error for a flag that the command does not have. It says if the word names an argument of the
// command, and suggests for a short flag the flags that begin with its letter: the parser suggests -h for every letter.
func unknownFlag(parse *kong.ParseError, word string) error {
	node := parse.Context.Selected()
	if node == nil {
		node = parse.Context.Model.Node
	}
	for _, argument := range node.Positional {
		if word == "--"+argument.Name {
			return Usagef("unknown flag %s: the %s is an argument: %s %s %s",
				word, argument.Name, parse.Context.Model.Name, CommandName(node), strings.ToUpper(argument.Name))
		}
	}
	if strings.HasPrefix(word, "--") {
		return parse
	}
	var similar []string
	for _, flag := range visibleFlags(node) {
		if strings.HasPrefix("-"+flag.Name, strings.ToLower(word)) {
			similar = append(similar, fmt.Sprintf("%q", "--"+flag.Name))
		}
	}
	switch len(similar) {
	case 0:
		return Usagef("unknown flag %s", word)
	case 1:
		return Usagef("unknown flag %s, did you mean %s?", word, similar[0])
	}
	return Usagef("unknown flag %s, did you mean one of %s?", word, strings.Join(similar, ", "))
}

// environment reads settings from the environment: NAME is the value, and NAME_FILE the file with a secret. A flag
// takes precedence, and an empty variable is ignored. A line end at the end of a value does not count: tools that store
// secrets often add one.
func (t *Terminal) environment() kong.Resolver {
	return kong.ResolverFunc(func(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
		if !flag.Tag.Has(settingTag) {
			return nil, nil
		}
		value := t.variable(config.Variable(flag.Name))
		if path := t.variable(config.FileVariable(flag.Name)); path != "" {
			content, ok, err := config.FromFile(flag, path)
			switch {
			case ok && value != "":
				return nil, &config.ValueError{
					Flag: flag.Name, Reason: "cannot be combined with " + config.FileVariable(flag.Name) + ". Omit one of them",
				}
			case ok || err != nil:
				return content, err
			}
		}
		if value != "" {
			return value, nil
		}
		return nil, nil
	})
}

// Settings returns the environment variables of all settings of the program, without secrets.
func (t *Terminal) Settings() (map[string]string, error) {
	parser, err := t.program.Parser(t)
	if err != nil {
		return nil, err
	}
	shown := map[string]string{}
	err = kong.Visit(parser.Model, func(node kong.Visitable, next kong.Next) error {
		if flag, ok := node.(*kong.Flag); ok && flag.Tag.Has(settingTag) {
			if value := t.variable(config.Variable(flag.Name)); value != "" {
				shown[config.Variable(flag.Name)] = config.Shown(flag, value)
			}
			if path := t.variable(config.FileVariable(flag.Name)); path != "" {
				shown[config.FileVariable(flag.Name)] = config.Mask(path)
			}
		}
		return next(nil)
	})
	if err != nil {
		return nil, fmt.Errorf("reading the settings: %w", err)
	}
	return shown, nil
}

// variable returns an environment variable.
func (t *Terminal) variable(name string) string { return strings.TrimRight(t.Getenv(name), "\r\n") }

// flagHelp returns the help of a flag with its default and its environment variable.
func flagHelp(value *kong.Value) string {
	var details []string
	switch {
	case value.Tag.Has(ImpliedTag):
		details = append(details, "default: "+value.Tag.Get(ImpliedTag))
	case value.HasDefault && !value.IsBool():
		details = append(details, "default: "+value.Default)
	}
	if value.Tag.Has(settingTag) {
		details = append(details, "$"+config.Variable(value.Name))
	}
	if len(details) == 0 {
		return value.Help
	}
	return strings.TrimSuffix(value.Help, ".") + " (" + strings.Join(details, ", ") + ")."
}

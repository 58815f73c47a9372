package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

type completionCmd struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"The shell." name:"bash|zsh|fish"` // Messages name the argument.
}

// completionCode is the code for each shell. It calls __complete with the words up to the cursor. PROGRAM and FUNCTION
// are replaced.
var completionCode = map[string]string{
	"bash": `FUNCTION() {
  local IFS=$'\n'
  COMPREPLY=($(PROGRAM __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o default -F FUNCTION PROGRAM
`,
	"zsh": `#compdef PROGRAM
FUNCTION() {
  local -a candidates
  candidates=(${(f)"$(PROGRAM __complete "${(@)words[2,CURRENT]}" 2>/dev/null)"})
  if (( $#candidates )); then compadd -a candidates; else _files; fi
}
compdef FUNCTION PROGRAM
[[ $funcstack[1] != FUNCTION ]] || FUNCTION # It was loaded from a directory in fpath, to complete a line.
`,
	"fish": `complete -c PROGRAM -f -a '(PROGRAM __complete (commandline -opc)[2..] (commandline -ct) 2>/dev/null)'
complete -c PROGRAM -n '__fish_seen_subcommand_from upload' -F
`,
}

// forProgram puts the name of a program into a text for its shell.
func forProgram(text, name string) string {
	return strings.NewReplacer("PROGRAM", name, "FUNCTION", "_"+strings.ReplaceAll(name, "-", "_")).Replace(text)
}

// Help returns the part of --help about how to use the code.
func (*completionCmd) Help() string {
	return `Load it in the file that your shell reads at its start:
  ~/.bashrc                   source <(roomsensor completion bash)
  ~/.zshrc, after compinit    source <(roomsensor completion zsh)
  file _roomsensor in fpath   roomsensor completion zsh >_roomsensor
  ~/.config/fish/config.fish  roomsensor completion fish | source`
}

// Run prints the code of a shell.
func (c *completionCmd) Run(t *Terminal) error {
	if _, err := fmt.Fprint(t.Stdout, forProgram(completionCode[c.Shell], t.program.Name)); err != nil {
		return fmt.Errorf("writing the result: %w", err)
	}
	return nil
}

// candidatesCmd is what the code of the shells calls.
type candidatesCmd struct {
	Words []string `arg:"" optional:""`
}

// Run prints what can stand in place of the last word, one candidate per line.
func (c *candidatesCmd) Run(t *Terminal, command *kong.Context) error {
	for _, candidate := range candidates(command.Model.Node, c.Words) {
		if _, err := fmt.Fprintln(t.Stdout, candidate); err != nil {
			return fmt.Errorf("writing the result: %w", err)
		}
	}
	return nil
}

// candidates returns the commands, flags or values that can stand in place of the last word.
func candidates(node *kong.Node, words []string) (found []string) {
	if len(words) == 0 {
		words = []string{""}
	}
	if len(words) > 1 && words[0] == "help" { // What follows is the name of a command.
		words = words[1:]
	}
	node, flag := position(node, words[:len(words)-1])
	last, prefix := strings.TrimPrefix(words[len(words)-1], "="), ""
	if name, value, both := strings.Cut(last, "="); both && flag == nil { // Zsh and fish pass --flag=value as one word.
		if flag = flagWithValue(node, name); flag == nil {
			return nil
		}
		last, prefix = value, name+"="
	}
	switch {
	case flag != nil && flag.Enum != "":
		found = strings.Split(flag.Enum, ",")
	case flag != nil:
	case strings.HasPrefix(last, "-"):
		for _, f := range visibleFlags(node) {
			found = append(found, "--"+f.Name)
		}
	default:
		found = wordsOf(node)
	}
	found = slices.DeleteFunc(found, func(text string) bool { return !strings.HasPrefix(text, last) })
	for i := range found {
		found[i] = prefix + found[i]
	}
	return found
}

// wordsOf returns the words other than flags that can follow a command: subcommands, and the values of arguments.
func wordsOf(node *kong.Node) (words []string) {
	for _, child := range node.Children {
		if !child.Hidden {
			words = append(words, child.Name)
		}
	}
	for _, argument := range node.Positional {
		if argument.Enum != "" {
			words = append(words, strings.Split(argument.Enum, ",")...)
		}
	}
	return words
}

// position returns the command that complete words name, and the flag whose value comes next, if any.
func position(node *kong.Node, words []string) (command *kong.Node, flag *kong.Flag) {
	for _, word := range words {
		switch {
		case word == "=": // Bash splits --flag=value into three words.
		case flag != nil:
			flag = nil
		case strings.HasPrefix(word, "-"):
			if node.DefaultCmd != nil {
				node = node.DefaultCmd // Its name was left out.
			}
			flag = flagWithValue(node, word)
		default:
			if i := slices.IndexFunc(node.Children, func(n *kong.Node) bool { return n.Name == word }); i >= 0 {
				node = node.Children[i]
			}
		}
	}
	return node, flag
}

func visibleFlags(node *kong.Node) (flags []*kong.Flag) {
	if node.DefaultCmd != nil {
		node = node.DefaultCmd
	}
	for _, level := range node.AllFlags(true) {
		flags = append(flags, level...)
	}
	return flags
}

// flagWithValue returns the flag that a word names, if the next word is its value.
func flagWithValue(node *kong.Node, word string) *kong.Flag {
	for _, flag := range visibleFlags(node) {
		if word == "--"+flag.Name && !flag.IsBool() {
			return flag
		}
	}
	return nil
}

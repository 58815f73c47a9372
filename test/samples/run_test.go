package samples_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"roomsensor/test/proctest"
)

// interpreter runs the samples in a language.
type interpreter struct {
	file     string                       // name of the file that contains the sample
	command  []string                     // followed by the file
	programs []string                     // that the samples need
	load     func(module string) []string // a command that succeeds if a module is installed
}

var interpreters = map[string]interpreter{
	"bash": {"sample.sh", []string{"bash"}, []string{"bash", "curl", "jq"}, nil},
	"python": {"sample.py", []string{python()}, []string{python()}, func(module string) []string {
		return []string{python(), "-c", "import " + module}
	}},
	"r": {"sample.R", []string{"Rscript"}, []string{"Rscript"}, func(module string) []string {
		return []string{"Rscript", "-e", "library(" + module + ")"}
	}},
	"javascript": {"sample.mjs", []string{"node"}, []string{"node"}, nil},
	"go":         {"sample.go", nil, []string{"go"}, nil}, // argv builds it.
}

// python returns the interpreter of the system, which has the modules that Debian packages.
func python() string {
	if _, err := os.Stat("/usr/bin/python3"); err == nil {
		return "/usr/bin/python3"
	}
	return "python3"
}

// missing returns what a sample needs and this machine does not have, or "".
func (s *sample) missing(t *testing.T) string {
	t.Helper()
	i := interpreters[s.language]
	for _, name := range i.programs {
		if _, err := exec.LookPath(name); err != nil {
			return name
		}
	}
	for _, module := range s.needs {
		if module == program {
			continue // The test builds it.
		}
		argv := i.load(module)
		if err := exec.CommandContext(t.Context(), argv[0], argv[1:]...).Run(); err != nil {
			return module
		}
	}
	return ""
}

// argv returns the command that runs the sample in a file. A sample in Go may import the client, so that it is built in
// this module.
func (s *sample) argv(t *testing.T, file string) []string {
	t.Helper()
	if s.language != "go" {
		return append(slices.Clone(interpreters[s.language].command), file)
	}
	path := filepath.Join(t.TempDir(), "sample")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", path, file)
	build.Dir = "../.."                               // The root of the module.
	build.Env = append(os.Environ(), "CGO_ENABLED=0") // Like other programs, whose build cache it shares.
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s\n%s", s.code, out)
	return []string{path}
}

// pythonClient returns the directory of the Python client, which the samples import.
func pythonClient(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../../clients/python")
	require.NoError(t, err)
	return dir
}

// result is what a sample did.
type result struct {
	code           int
	stdout, stderr string
	files          map[string]string // that it wrote
}

// program is the program of this module, which a sample needs that calls it.
const program = "roomsensor"

// buildProgram compiles the program and returns its directory, or "" if no sample needs it.
func buildProgram(t *testing.T, samples []sample) string {
	t.Helper()
	if !slices.ContainsFunc(samples, func(s sample) bool { return slices.Contains(s.needs, program) }) {
		return ""
	}
	path, err := proctest.Build(t.Context(), t.TempDir(), proctest.Roomsensor)
	require.NoError(t, err)
	return filepath.Dir(path)
}

// run runs a sample in an empty directory, with its placeholders replaced as the form on the page does it.
func (s *sample) run(t *testing.T, values *strings.Replacer) result {
	t.Helper()
	i, dir := interpreters[s.language], t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, i.file), []byte(values.Replace(s.code)), 0o600))
	argv := s.argv(t, filepath.Join(dir, i.file))
	command := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
	var stdout, stderr bytes.Buffer
	command.Dir, command.Stdout, command.Stderr = dir, &stdout, &stderr
	command.Env = append(os.Environ(), "PATH="+s.programs+string(os.PathListSeparator)+os.Getenv("PATH"),
		"PYTHONPATH="+pythonClient(t), "PYTHONDONTWRITEBYTECODE=1")
	err := command.Run()
	if _, ok := errors.AsType[*exec.ExitError](err); !ok {
		require.NoError(t, err)
	}
	files := map[string]string{}
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, entry := range entries {
		if entry.Name() != i.file {
			text, err := os.ReadFile(filepath.Join(dir, entry.Name()))
			require.NoError(t, err)
			files[entry.Name()] = string(text)
		}
	}
	return result{command.ProcessState.ExitCode(), stdout.String(), stderr.String(), files}
}

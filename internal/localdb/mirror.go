package localdb

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// defaultMirror serves Debian to everybody.
const defaultMirror = "http://deb.debian.org/debian"

// release is what /etc/os-release says.
type release struct{ id, codename string }

var errNotDebian = errors.New("this is not Debian or Ubuntu")

// osRelease tells which Debian this is, or that it is none.
func osRelease() (release, error) {
	data, err := os.ReadFile("/etc/os-release")
	if err != nil {
		return release{}, errNotDebian
	}
	fields := map[string]string{}
	for line := range strings.Lines(string(data)) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok {
			fields[name] = strings.Trim(value, `"'`)
		}
	}
	family := append(strings.Fields(fields["ID_LIKE"]), fields["ID"])
	if !slices.Contains(family, "debian") && !slices.Contains(family, "ubuntu") {
		return release{}, errNotDebian
	}
	return release{id: fields["ID"], codename: fields["VERSION_CODENAME"]}, nil
}

// mirrors returns where Debian's packages can come from: first where this machine's own do, for it may reach nothing
// else.
func mirrors(r release) []string {
	if r.id != "debian" {
		return []string{defaultMirror}
	}
	var found []string
	files := []string{"/etc/apt/sources.list"}
	for _, pattern := range []string{"*.list", "*.sources"} {
		matches, _ := filepath.Glob(filepath.Join("/etc/apt/sources.list.d", pattern)) // Only a bad pattern is an error.
		files = append(files, matches...)
	}
	for _, file := range files {
		data, err := os.ReadFile(file) //nolint:gosec // A file of apt.
		if err != nil {
			continue
		}
		if filepath.Ext(file) == ".sources" {
			found = append(found, deb822Mirrors(string(data), r.codename)...)
		} else {
			found = append(found, listMirrors(string(data), r.codename)...)
		}
	}
	return unique(append(found, defaultMirror))
}

// listMirrors reads lines like `deb [arch=amd64] http://deb.debian.org/debian bookworm main`.
func listMirrors(text, suite string) []string {
	var found []string
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		if before, rest, ok := strings.Cut(line, "["); ok {
			_, after, _ := strings.Cut(rest, "]")
			line = before + after
		}
		fields := strings.Fields(line)
		if len(fields) >= 4 && fields[0] == "deb" && fields[2] == suite && slices.Contains(fields[3:], "main") {
			found = append(found, web(fields[1:2])...)
		}
	}
	return found
}

// deb822Mirrors reads paragraphs of `URIs: http://deb.debian.org/debian` and other fields.
func deb822Mirrors(text, suite string) []string {
	var found []string
	for paragraph := range strings.SplitSeq(strings.ReplaceAll(text, "\r\n", "\n"), "\n\n") {
		fields := deb822Fields(paragraph)
		enabled := len(fields["enabled"]) == 0 || fields["enabled"][0] != "no"
		if enabled && slices.Contains(fields["types"], "deb") && slices.Contains(fields["suites"], suite) &&
			slices.Contains(fields["components"], "main") {
			found = append(found, web(fields["uris"])...)
		}
	}
	return found
}

// deb822Fields returns the words of every field of a paragraph. A line that begins with a space goes on with the field
// before it.
func deb822Fields(paragraph string) map[string][]string {
	fields := map[string][]string{}
	name := ""
	for line := range strings.Lines(paragraph) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		value := line
		if !strings.HasPrefix(line, " ") && !strings.HasPrefix(line, "\t") {
			name, value, _ = strings.Cut(line, ":")
			name = strings.ToLower(name)
		}
		fields[name] = append(fields[name], strings.Fields(value)...)
	}
	return fields
}

// web keeps the addresses that mmdebstrap can be given; `cdrom:` and `mirror:` it does not know.
func web(uris []string) []string {
	return slices.DeleteFunc(slices.Clone(uris), func(uri string) bool {
		return !strings.HasPrefix(uri, "http://") && !strings.HasPrefix(uri, "https://")
	})
}

func unique(list []string) []string {
	var kept []string
	for _, s := range list {
		if s = strings.TrimRight(s, "/"); !slices.Contains(kept, s) {
			kept = append(kept, s)
		}
	}
	return kept
}

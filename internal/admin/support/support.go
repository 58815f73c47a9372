// Package support writes what is needed to find out what is wrong with an installation, for roomsensor support-bundle.
package support

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"time"

	"roomsensor/internal/config"
	"roomsensor/internal/process"
	"roomsensor/internal/store"
)

// Options are what a bundle contains beside the sizes of the tables.
type Options struct {
	Version   string                                        // of the program
	Settings  map[string]string                             // environment of the command, without secrets
	Reports   map[string]func(context.Context) (any, error) // of other commands, by name
	Processes []string                                      // ops addresses
	Logs      map[string]io.Reader                          // by name
}

// Part is a file of a bundle.
type Part struct {
	Name  string `json:"name"`
	Bytes int    `json:"bytes"`
	Error string `json:"error,omitempty"` // why it could not be collected
}

// Contents are the parts of a bundle.
type Contents struct {
	File string `json:"file"`
	Data []Part `json:"data"`
}

const (
	// partTimeout bounds the time for a part.
	partTimeout = 20 * time.Second
	// maxPart bounds the size of an answer of a process.
	maxPart = 16 << 20
	// maxLog is how much of the end of each log is kept.
	maxLog = 4 << 20
)

// bundle is a bundle that is being written.
type bundle struct {
	files    *tar.Writer
	contents []Part
	written  error
	database config.Database
	options  Options
}

// Write writes a bundle as tar.gz and returns its parts. What cannot be collected is in the list with its error,
// because a bundle is made when something does not work. All parts are masked.
func Write(ctx context.Context, w io.Writer, database config.Database, o Options) ([]Part, error) {
	packed := gzip.NewWriter(w)
	b := &bundle{files: tar.NewWriter(packed), database: database, options: o}
	b.add(ctx, "version.json", b.version)
	b.add(ctx, "settings.json", func(context.Context) (any, error) { return o.Settings, nil })
	for _, name := range slices.Sorted(maps.Keys(o.Reports)) {
		b.add(ctx, name+".json", o.Reports[name])
	}
	b.add(ctx, "tables.json", b.tables)
	for _, address := range o.Processes {
		b.addProcess(ctx, address)
	}
	for _, name := range slices.Sorted(maps.Keys(o.Logs)) {
		b.add(ctx, "logs/"+name, func(context.Context) (any, error) { return end(o.Logs[name]) })
	}
	if ctx.Err() != nil {
		return nil, process.ErrInterrupted
	}
	contents := slices.Clone(b.contents)
	b.add(ctx, "contents.json", func(context.Context) (any, error) { return contents, nil })
	if err := cmp.Or(b.written, b.files.Close(), packed.Close()); err != nil {
		return nil, fmt.Errorf("writing the bundle: %w", err)
	}
	return contents, nil
}

// add adds a part: an object, which becomes JSON, or a text.
func (b *bundle) add(ctx context.Context, name string, collect func(context.Context) (any, error)) {
	bounded, cancel := context.WithTimeout(ctx, partTimeout)
	defer cancel()
	part := Part{Name: name}
	object, err := collect(bounded)
	text, isText := object.([]byte)
	if err == nil && !isText {
		text, err = json.MarshalIndent(object, "", "  ")
	}
	if err != nil {
		part.Error = config.Mask(err.Error())
		b.contents = append(b.contents, part)
		return
	}
	text = []byte(config.Mask(string(text)))
	part.Bytes = len(text)
	b.contents = append(b.contents, part)
	header := &tar.Header{
		Name: "roomsensor-support/" + name, Mode: 0o600, Size: int64(len(text)), ModTime: time.Now(),
	}
	if b.written == nil {
		b.written = b.files.WriteHeader(header)
	}
	if b.written == nil {
		_, b.written = b.files.Write(text)
	}
}

func (b *bundle) version(context.Context) (any, error) {
	return map[string]any{
		"version": b.options.Version, "go": runtime.Version(), "system": runtime.GOOS + "/" + runtime.GOARCH,
		"processors": runtime.NumCPU(), "at": time.Now().UTC(),
	}, nil
}

func (b *bundle) tables(ctx context.Context) (any, error) {
	s, err := process.OpenStore(ctx, b.database, store.Operator)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	return s.TableSizes(ctx)
}

// addProcess adds what a process reports on its ops address.
func (b *bundle) addProcess(ctx context.Context, address string) {
	dir := "processes/" + strings.NewReplacer(":", "_", "/", "_").Replace(address) + "/"
	for _, part := range [][2]string{
		{"settings.json", "/settings"},
		{"readyz.json", "/readyz"},
		{"metrics.txt", "/metrics"},
		{"goroutines.txt", "/debug/pprof/goroutine?debug=1"},
	} {
		b.add(ctx, dir+part[0], func(ctx context.Context) (any, error) { return get(ctx, "http://"+address+part[1]) })
	}
}

func get(ctx context.Context, url string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, fmt.Errorf("requesting a part: %w", err)
	}
	response, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(request)
	if err != nil {
		return nil, fmt.Errorf("requesting a part: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxPart)) // Also of a process that is not ready.
	if err != nil {
		return nil, fmt.Errorf("reading a part: %w", err)
	}
	return text, nil
}

// end returns the last whole lines of a log.
func end(log io.Reader) ([]byte, error) {
	text, skipped := []byte(nil), false
	buffer := make([]byte, 64<<10)
	for {
		n, err := log.Read(buffer)
		text = append(text, buffer[:n]...)
		if len(text) > 2*maxLog {
			text, skipped = append([]byte(nil), text[len(text)-maxLog:]...), true
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("reading a log: %w", err)
		}
	}
	if len(text) > maxLog {
		text, skipped = text[len(text)-maxLog:], true
	}
	if skipped {
		text = text[bytes.IndexByte(text, '\n')+1:]
	}
	return text, nil
}

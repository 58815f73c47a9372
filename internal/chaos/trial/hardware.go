package trial

import (
	"os"
	"runtime"
	"strings"

	"github.com/nats-io/nats-server/v2/server"
)

// Hardware is what a trial ran on.
type Hardware struct {
	CPU      string `json:"cpu"`
	CPUs     int    `json:"cpus"`
	System   string `json:"system"`
	Go       string `json:"go"`
	Database string `json:"database"`
	NATS     string `json:"nats"`
}

// Machine describes this machine, and a database in its own words.
func Machine(database string) Hardware {
	return Hardware{
		CPU: processor(), CPUs: runtime.NumCPU(), System: runtime.GOOS + "/" + runtime.GOARCH, Go: runtime.Version(),
		Database: database, NATS: server.VERSION,
	}
}

// processor is the name of the processor, where the system tells it.
func processor() string {
	info, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return "unknown"
	}
	for line := range strings.Lines(string(info)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "unknown"
}

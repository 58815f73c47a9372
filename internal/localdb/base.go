package localdb

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"
)

// systemBase is where root keeps what this package makes: PostgreSQL refuses to run as root, and an ordinary user has
// to reach it.
const systemBase = "/var/lib/roomsensor"

// Base returns the directory that holds everything this package makes: ROOMSENSOR_HOME where it is set, else
// /var/lib/roomsensor for root and the state directory of anybody else.
func Base() (string, error) {
	if home := os.Getenv("ROOMSENSOR_HOME"); home != "" {
		return filepath.Abs(home) //nolint:wrapcheck // It fails only without a working directory, and says so.
	}
	if os.Geteuid() == 0 {
		return systemBase, nil
	}
	if state := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(state) {
		return filepath.Join(state, "roomsensor"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", errors.New("no home directory is set: name a directory in ROOMSENSOR_HOME")
	}
	return filepath.Join(home, ".local", "state", "roomsensor"), nil
}

// DefaultDataDir returns the data directory of the demo and of `roomsensor localdb`.
func DefaultDataDir() (string, error) { return inBase("localdb") }

// TestDataDir returns the data directory that plain `go test` runs share.
func TestDataDir() (string, error) { return inBase("tests", "shared") }

func inBase(elem ...string) (string, error) {
	base, err := Base()
	if err != nil {
		return "", err
	}
	return filepath.Join(append([]string{base}, elem...)...), nil
}

// image returns the Docker image of TimescaleDB: ROOMSENSOR_TIMESCALEDB_IMAGE where it is set.
func image() string {
	return cmp.Or(os.Getenv("ROOMSENSOR_TIMESCALEDB_IMAGE"), "timescale/timescaledb:2.29.0-pg17")
}

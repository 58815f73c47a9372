//go:build !alerts

package service

import "time"

const (
	// statisticsInterval is how often a process reads the figures of the whole database. A scrape reads them from memory.
	statisticsInterval = 5 * time.Minute
	// maintenanceInterval is how often a worker looks for chunks to rewrite.
	maintenanceInterval = 5 * time.Minute
)

//go:build alerts

package service

import "time"

// The intervals of the trial of the alerts, in which a second stands for a minute. They are never in a product build.
const (
	statisticsInterval  = 5 * time.Second
	maintenanceInterval = 5 * time.Second
)

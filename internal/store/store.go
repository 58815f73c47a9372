package store

import (
	"context"

	"roomsensor/internal/store/alerts"
	"roomsensor/internal/store/current"
	"roomsensor/internal/store/feed"
	"roomsensor/internal/store/fleet"
	"roomsensor/internal/store/ops"
	"roomsensor/internal/store/people"
	"roomsensor/internal/store/pg"
	"roomsensor/internal/store/readings"
	"roomsensor/internal/store/write"
)

// Store reads and writes the database. It is safe for concurrent use.
type Store struct {
	*pg.DB
	*Ops
	*Fleet
	*People
	*Feed
	*Readings
	*Write
	*Current
	*Alerts
}

// Each part of a Store has the statements of its tables.
type (
	// Ops is for operators.
	Ops = ops.Store
	// Fleet has teams, keys and devices.
	Fleet = fleet.Store
	// People has the people who use the dashboard.
	People = people.Store
	// Feed has the change feed.
	Feed = feed.Store
	// Readings reads readings.
	Readings = readings.Store
	// Write stores batches and rejects.
	Write = write.Store
	// Current reads live snapshots.
	Current = current.Store
	// Alerts has alerts and mails.
	Alerts = alerts.Store
)

// Role is what a process does with the database.
type Role = pg.Role

// The roles, see package pg.
var (
	API       = pg.API
	Ingest    = pg.Ingest
	Operator  = pg.Operator
	Dashboard = pg.Dashboard
	Notify    = pg.Notify
)

// Open creates the pools of a role. It does not connect: a server that does not respond yet is not an error, see Ping.
func Open(ctx context.Context, databaseURL string, role Role) (*Store, error) {
	d, err := pg.Open(ctx, databaseURL, role)
	if err != nil {
		return nil, err
	}
	f := fleet.New(d)
	r := readings.New(d, f)
	s := &Store{
		DB:       d,
		Ops:      ops.New(d),
		Fleet:    f,
		Readings: r,
		Write:    write.New(d),
		Feed:     feed.New(d),
		People:   people.New(d, f),
		Current:  current.New(d, r),
		Alerts:   alerts.New(d),
	}
	return s, nil
}

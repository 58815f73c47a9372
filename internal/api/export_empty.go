package api

import (
	"context"

	"roomsensor/internal/roomsensor"
)

// noRows is the export of a plan that selects nothing: the header row alone.
type noRows struct{}

func (noRows) Rows() int  { return 0 }
func (noRows) Lines() int { return 0 }
func (noRows) Close()     {}

func (noRows) Each(context.Context, func(*roomsensor.ExportRow) error) error { return nil }

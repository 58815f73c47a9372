package roomsensor

import (
	"bytes"

	"github.com/google/uuid"
)

// CompareIDs orders ids like the database.
func CompareIDs(a, b uuid.UUID) int { return bytes.Compare(a[:], b[:]) }

package team

import (
	"io/fs"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"roomsensor/schema"
)

// TestObjectTexts checks that each kind of object that a trigger writes into the audit log has a text.
func TestObjectTexts(t *testing.T) {
	t.Parallel()
	files, err := fs.Glob(schema.FS, "*.sql")
	require.NoError(t, err)
	kinds := 0
	for _, name := range files {
		text, err := fs.ReadFile(schema.FS, name)
		require.NoError(t, err)
		for _, found := range regexp.MustCompile(`audit_record\('(\w+)'`).FindAllSubmatch(text, -1) {
			require.Contains(t, objectTexts, string(found[1]), name)
			kinds++
		}
	}
	require.Positive(t, kinds)
}

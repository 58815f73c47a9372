package deploy

import (
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
	core "k8s.io/api/core/v1"
)

// secret matches variables that are or contain a secret.
var secret = regexp.MustCompile(`PASSWORD|SECRET|TOKEN|KEY|^(DATABASE|NATS)_URL$`)

// needs are the secrets of each process. The API does not use the queue.
var needs = map[string][]string{
	"api":      {"DATABASE_URL"},
	"migrate":  {"DATABASE_URL"},
	"receiver": {"DATABASE_URL", "NATS_URL"},
	"ingest":   {"DATABASE_URL", "NATS_URL"},
}

func TestSecrets(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, m *manifests) {
		t.Helper()
		require.NotRegexp(t, `://[^/\s"]*:[^/\s"]*@`, m.text, "a password in a URL")
		for _, settings := range m.settings {
			for variable := range settings.Data {
				require.NotRegexp(t, secret, variable)
			}
		}
		for name, pod := range m.pods() {
			var given []string
			for _, variable := range pod.Spec.Containers[0].Env {
				if secret.MatchString(variable.Name) {
					requireReference(t, &variable)
					given = append(given, variable.Name)
				}
			}
			require.ElementsMatch(t, needs[name], given, name)
		}
	})
}

// requireReference requires that a variable refers to a mandatory Secret.
func requireReference(t *testing.T, variable *core.EnvVar) {
	t.Helper()
	require.Empty(t, variable.Value, variable.Name)
	require.NotNil(t, variable.ValueFrom.SecretKeyRef, variable.Name)
	kept := map[string]string{"DATABASE_URL": "roomsensor-database", "NATS_URL": "roomsensor-queue"}
	require.Equal(t, kept[variable.Name], variable.ValueFrom.SecretKeyRef.Name)
	require.Equal(t, variable.Name, variable.ValueFrom.SecretKeyRef.Key)
	require.Nil(t, variable.ValueFrom.SecretKeyRef.Optional)
}

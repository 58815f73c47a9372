package deploy

import (
	"bytes"
	"encoding/json"
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
	core "k8s.io/api/core/v1"
)

// secret matches variables that are or contain a secret.
var secret = regexp.MustCompile(`PASSWORD|SECRET|TOKEN|KEY|^(DATABASE|NATS|SMTP|MQTT)_URL$`)

// needs are the secrets of each process. The API and the dashboard do not use the queue.
var needs = map[string][]string{
	"api":       {"DATABASE_URL"},
	"dashboard": {"DATABASE_URL"},
	"migrate": {
		"DATABASE_URL", "DATABASE_API_PASSWORD", "DATABASE_WORKER_PASSWORD", "DATABASE_RECEIVER_PASSWORD",
		"DATABASE_DASHBOARD_PASSWORD", "DATABASE_NOTIFY_PASSWORD",
	},
	"mqtt":     {"DATABASE_URL", "NATS_URL", "MQTT_URL"},
	"notify":   {"DATABASE_URL", "SMTP_URL"},
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
					requireReference(t, &variable, "roomsensor-"+name)
					given = append(given, variable.Name)
				}
			}
			require.ElementsMatch(t, needs[name], given, name)
		}
	})
}

// requireReference requires that a variable refers to a mandatory Secret, which no other process gets.
func requireReference(t *testing.T, variable *core.EnvVar, secret string) {
	t.Helper()
	require.Empty(t, variable.Value, variable.Name)
	require.NotNil(t, variable.ValueFrom.SecretKeyRef, variable.Name)
	require.Equal(t, secret, variable.ValueFrom.SecretKeyRef.Name)
	require.Equal(t, variable.Name, variable.ValueFrom.SecretKeyRef.Key)
	require.Nil(t, variable.ValueFrom.SecretKeyRef.Optional)
}

// TestOperatorPod checks the file that kubectl run merges into the pod of an operator command: the same secrets as the
// migrations, and the same restrictions as the other pods.
func TestOperatorPod(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../deploy/kubernetes/operator.json")
	require.NoError(t, err)
	var pod core.Pod
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	require.NoError(t, decoder.Decode(&pod))
	container := pod.Spec.Containers[0]
	require.Equal(t, "roomsensor-operator", container.Name, "kubectl run names the container after the pod")
	require.Equal(t, "roomsensor-migrate", container.EnvFrom[0].SecretRef.Name)
	require.True(t, *pod.Spec.SecurityContext.RunAsNonRoot)
	require.False(t, *container.SecurityContext.AllowPrivilegeEscalation)
}

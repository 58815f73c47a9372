package deploy

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	keda "github.com/kedacore/keda/v2/apis/keda/v1alpha1"
	"github.com/stretchr/testify/require"
	apps "k8s.io/api/apps/v1"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

const namespace = "roomsensor"

// manifests are the objects of one rendered directory.
type manifests struct {
	text        string
	deployments map[string]*apps.Deployment
	budgets     map[string]*policy.PodDisruptionBudget
	services    map[string]*core.Service
	policies    map[string]*networking.NetworkPolicy
	settings    map[string]*core.ConfigMap
	scaled      map[string]*keda.ScaledObject
	accounts    map[string]*core.ServiceAccount
	ingresses   map[string]*networking.Ingress
	migrate     *batch.Job
	mqtt        bool // rendered with MQTT
}

// component is the label with the name of the process.
const component = "app.kubernetes.io/component"

// pods returns the pod templates by component.
func (m *manifests) pods() map[string]*core.PodTemplateSpec {
	pods := map[string]*core.PodTemplateSpec{m.migrate.Spec.Template.Labels[component]: &m.migrate.Spec.Template}
	for _, d := range m.deployments {
		pods[d.Spec.Template.Labels[component]] = &d.Spec.Template
	}
	return pods
}

// everywhere runs a test on the base manifests, on the example, and on the example with MQTT.
func everywhere(t *testing.T, test func(t *testing.T, m *manifests)) {
	t.Helper()
	for _, dir := range []string{"base", "example", mqttExample} {
		t.Run(dir, func(t *testing.T) {
			t.Parallel()
			test(t, render(t, dir))
		})
	}
}

// render renders a directory as `kubectl kustomize` does, and decodes it strictly: an unknown field is an error.
func render(t *testing.T, dir string) *manifests {
	t.Helper()
	root := "../../deploy/kubernetes/"
	mqtt := dir == mqttExample
	if mqtt {
		root, dir = addMQTT(t, root), "example"
	}
	resources, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), filepath.Join(root, dir))
	require.NoError(t, err)
	types := runtime.NewScheme()
	require.NoError(t, scheme.AddToScheme(types))
	require.NoError(t, keda.AddToScheme(types))
	decoder := serializer.NewCodecFactory(types, serializer.EnableStrict).UniversalDeserializer()
	m := newManifests()
	m.mqtt = mqtt
	for _, resource := range resources.Resources() {
		text := resource.MustYaml()
		object, _, err := decoder.Decode([]byte(text), nil, nil)
		require.NoError(t, err, text)
		m.add(t, object)
		m.text += "---\n" + text
	}
	return m
}

// mqttExample is the example with the line of MQTT, which is a comment at first.
const mqttExample = "example with MQTT"

// withMQTT returns components, with MQTT if it was rendered.
func (m *manifests) withMQTT(components ...string) []string {
	if m.mqtt {
		components = append(components, "mqtt")
	}
	return components
}

// addMQTT returns a copy of the manifests, in which the example has MQTT.
func addMQTT(t *testing.T, root string) string {
	t.Helper()
	site := t.TempDir()
	require.NoError(t, os.CopyFS(site, os.DirFS(root)))
	path := filepath.Join(site, "example/kustomization.yaml")
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Contains(t, string(text), "  # - ../mqtt\n")
	text = bytes.Replace(text, []byte("# - ../mqtt"), []byte("- ../mqtt"), 1)
	require.NoError(t, os.WriteFile(path, text, 0o600)) //nolint:gosec // In a temporary directory.
	return site
}

func newManifests() *manifests {
	return &manifests{
		deployments: map[string]*apps.Deployment{},
		budgets:     map[string]*policy.PodDisruptionBudget{},
		services:    map[string]*core.Service{},
		policies:    map[string]*networking.NetworkPolicy{},
		settings:    map[string]*core.ConfigMap{},
		scaled:      map[string]*keda.ScaledObject{},
		accounts:    map[string]*core.ServiceAccount{},
		ingresses:   map[string]*networking.Ingress{},
	}
}

// add adds an object. A kind that is not expected, such as a Secret, is an error.
func (m *manifests) add(t *testing.T, object runtime.Object) {
	t.Helper()
	switch o := object.(type) {
	case *core.Namespace:
		require.Equal(t, namespace, o.Name)
		require.Equal(t, "restricted", o.Labels["pod-security.kubernetes.io/enforce"])
	case *apps.Deployment:
		keep(t, m.deployments, o)
	case *policy.PodDisruptionBudget:
		keep(t, m.budgets, o)
	case *core.Service:
		keep(t, m.services, o)
	case *networking.NetworkPolicy:
		keep(t, m.policies, o)
	case *core.ConfigMap:
		keep(t, m.settings, o)
	case *keda.ScaledObject:
		keep(t, m.scaled, o)
	case *core.ServiceAccount:
		keep(t, m.accounts, o)
	case *networking.Ingress:
		keep(t, m.ingresses, o)
	case *batch.Job:
		require.Nil(t, m.migrate)
		m.migrate = o
	default:
		require.Fail(t, "this kind has no place here", "%T", object)
	}
}

// named is the interface of all objects.
type named interface {
	GetName() string
	GetNamespace() string
}

func keep[O named](t *testing.T, kept map[string]O, object O) {
	t.Helper()
	require.Equal(t, namespace, object.GetNamespace(), object.GetName())
	require.True(t, strings.HasPrefix(object.GetName(), "roomsensor"), object.GetName())
	kept[object.GetName()] = object
}

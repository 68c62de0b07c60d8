package cluster_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/trainyard/trainyard/internal/testing/local"
)

// at is a pod with one volume at a path, which runs a script.
func at(name, path string, source corev1.VolumeSource, script string, changes ...func(*corev1.VolumeMount)) *corev1.Pod {
	pod := local.Pod(name, script)
	mount := corev1.VolumeMount{Name: "volume", MountPath: path}
	for _, change := range changes {
		change(&mount)
	}
	pod.Spec.Volumes = []corev1.Volume{{Name: "volume", VolumeSource: source}}
	pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{mount}
	return pod
}

func readOnly(m *corev1.VolumeMount) { m.ReadOnly = true }

func subPath(path string) func(*corev1.VolumeMount) {
	return func(m *corev1.VolumeMount) { m.SubPath = path }
}

// settings are a config map and a secret that the pods of a test use.
const settings = `
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {rate: "0.1", name: first}
binaryData: {bytes: /wAB}
---
apiVersion: v1
kind: Secret
metadata: {name: keys}
stringData: {password: hunter2}
`

func TestVolumes(t *testing.T) {
	t.Parallel()
	w := local.New(t)
	w.Apply(settings)
	host := t.TempDir()
	write(t, host+"/file", "from the machine\n")
	if err := os.MkdirAll(host+"/some/folder", 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, host+"/some/folder/deep", "deep\n")

	empty := corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}
	memory := corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory, SizeLimit: ptr.To(quantity("8Mi"))}}
	config := corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}}}
	chosen := corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
		LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}, DefaultMode: ptr.To(int32(0o400)),
		Items: []corev1.KeyToPath{{Key: "rate", Path: "learning/rate"}},
	}}
	absent := corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "absent"}, Optional: ptr.To(true)}}
	secret := corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "keys"}}
	folder := corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: host}}
	file := corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: host + "/file", Type: ptr.To(corev1.HostPathFile)}}
	created := corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: host + "/created", Type: ptr.To(corev1.HostPathDirectoryOrCreate)}}
	downward := corev1.VolumeSource{DownwardAPI: &corev1.DownwardAPIVolumeSource{Items: []corev1.DownwardAPIVolumeFile{
		{Path: "labels", FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.labels"}},
		{Path: "memory", ResourceFieldRef: &corev1.ResourceFieldSelector{ContainerName: "main", Resource: "limits.memory", Divisor: quantity("1Mi")}},
	}}}
	const isReadOnly = `2>&1 | grep -o 'Read-only file system'`

	cases := []struct {
		what string
		pod  *corev1.Pod
		want string
	}{
		{"emptyDir is empty, writable and for everybody", at("empty", "/data/of/mine", empty, `cd /data/of/mine; ls -A; echo hello > f; cat f; stat -c %a .`), "hello\n777\n"},
		{"emptyDir in memory is a tmpfs of its size", at("memory", "/cache", memory, `stat -f -c %T /cache; df --output=size -k /cache | tail -1 | tr -d ' '; head -c 9000000 /dev/zero > /cache/f 2>&1; echo $?`), "tmpfs\n8192\n1\n"},
		{"configMap has a file per key", at("config", "/etc/settings", config, `cd /etc/settings; ls; cat rate; echo; od -An -tx1 bytes`), "bytes\nname\nrate\n0.1\n ff 00 01\n"},
		{"configMap with chosen keys and mode", at("chosen", "/etc/settings", chosen, `cd /etc/settings; find -L . -name '..*' -prune -o -type f -print; stat -L -c %a learning/rate`), "./learning/rate\n400\n"},
		{"configMap that may be absent", at("absent", "/etc/settings", absent, `ls /etc/settings | wc -l`), "0\n"},
		{"configMap is read-only", at("config-ro", "/etc/settings", config, `touch /etc/settings/new `+isReadOnly), "Read-only file system\n"},
		{"secret is in memory", at("secret", "/keys", secret, `cat /keys/password; echo; stat -f -c %T /keys`), "hunter2\ntmpfs\n"},
		{"downwardAPI describes the pod", at("downward", "/podinfo", downward, `cat /podinfo/labels; echo; cat /podinfo/memory`), "team=\"blue\"\n64"},
		{"hostPath is the machine's folder", at("host", "/machine", folder, `cat /machine/file; echo from the pod > /machine/reply`), "from the machine\n"},
		{"hostPath of a file, over one that exists", at("host-file", "/etc/issue", file, `cat /etc/issue`), "from the machine\n"},
		{"hostPath that is created", at("host-created", "/machine", created, `echo here > /machine/new; ls /machine`), "new\n"},
		{"hostPath read-only", at("host-ro", "/machine", folder, `cat /machine/file; touch /machine/new `+isReadOnly, readOnly), "from the machine\nRead-only file system\n"},
		{"subPath is a folder of a volume", at("sub", "/deep", folder, `cat /deep/deep`, subPath("some/folder")), "deep\n"},
		{"subPath is a file of a volume", at("sub-file", "/etc/rate.conf", config, `cat /etc/rate.conf`, subPath("rate")), "0.1"},
		{"subPath that is missing is made in the volume", at("sub-new", "/out", folder, `echo made > /out/f; cat /out/f`, subPath("made/for/me")), "made\n"},
		{"subPath read-only", at("sub-ro", "/deep", folder, `cat /deep/deep; touch /deep/new `+isReadOnly, readOnly, subPath("some/folder")), "deep\nRead-only file system\n"},
		{"subPathExpr takes variables", at("sub-expr", "/out", folder, `echo mine > /out/f`, func(m *corev1.VolumeMount) { m.SubPathExpr = "runs/$(POD)" }), ""},
		{"a volume over a folder that exists hides it", at("hides", "/usr/share", empty, `ls -A /usr/share | wc -l; ls /usr/bin | wc -l | grep -c ...`), "0\n1\n"},
		{"a volume inside of a volume", nested(at("nested", "/outer", empty, `echo in > /outer/inner/f; ls /outer; cat /elsewhere/f`)), "inner\nin\n"},
		{"the working directory may be a volume", inside(at("work", "/work/here", empty, `pwd; touch f; ls /work/here`)), "/work/here\nf\n"},
	}
	for _, c := range cases {
		c.pod.Labels = map[string]string{"team": "blue"}
		main := &c.pod.Spec.Containers[0]
		main.Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: quantity("64Mi")}
		main.Env = []corev1.EnvVar{{Name: "POD", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}}}
		w.Create(c.pod)
	}
	for _, c := range cases {
		w.Run(t, c.what, func(t *testing.T, w *local.World) {
			w.UntilPhase(c.pod.Name, corev1.PodSucceeded)
			if got := w.Logs(c.pod.Name); got != c.want {
				t.Errorf("the pod printed %q, want %q", got, c.want)
			}
		})
	}
	for path, want := range map[string]string{
		"reply": "from the pod\n", "created/new": "here\n", "made/for/me/f": "made\n", "runs/sub-expr/f": "mine\n", "new": "", "file": "from the machine\n",
	} {
		if got := read(t, filepath.Join(host, path)); got != want {
			t.Errorf("on the machine %s is %q, want %q", path, got, want)
		}
	}
}

// nested puts a second volume into the first, and once more elsewhere.
func nested(pod *corev1.Pod) *corev1.Pod {
	pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: "inner"})
	main := &pod.Spec.Containers[0]
	main.VolumeMounts = append([]corev1.VolumeMount{{Name: "inner", MountPath: "/outer/inner"}, {Name: "inner", MountPath: "/elsewhere"}}, main.VolumeMounts...)
	return pod
}

// inside makes the volume the working directory.
func inside(pod *corev1.Pod) *corev1.Pod {
	pod.Spec.Containers[0].WorkingDir = pod.Spec.Containers[0].VolumeMounts[0].MountPath
	return pod
}

func TestVolumesFollowTheirSource(t *testing.T) {
	t.Parallel()
	w := local.New(t)
	w.Apply(settings)
	pod := local.Pod("follows", `cd /live; echo start; until [ "$(cat config/rate secret/password)" = "0.2swordfish" ] && grep -q red podinfo/labels; do sleep 0.2; done; cat /fixed`)
	pod.Labels = map[string]string{"team": "blue"}
	pod.Spec.Volumes = []corev1.Volume{
		{Name: "fixed", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}}}},
		{Name: "live", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
			{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}, Items: []corev1.KeyToPath{{Key: "rate", Path: "config/rate"}}}},
			{Secret: &corev1.SecretProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "keys"}, Items: []corev1.KeyToPath{{Key: "password", Path: "secret/password"}}}},
			{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{{Path: "podinfo/labels", FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.labels"}}}}},
		}}}},
	}
	pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{
		{Name: "live", MountPath: "/live"},
		{Name: "fixed", MountPath: "/fixed", SubPath: "rate"},
	}
	w.Create(pod)
	w.Await("start", "logs", "follows")
	w.Kubectl("patch", "configmap", "settings", "-p", `{"data": {"rate": "0.2"}}`)
	w.Kubectl("patch", "secret", "keys", "-p", `{"stringData": {"password": "swordfish"}}`)
	w.Kubectl("label", "pod", "follows", "team=red", "--overwrite")
	w.UntilPhase("follows", corev1.PodSucceeded)
	if got := w.Logs("follows"); got != "start\n0.1" {
		t.Errorf("the log is %q, want 0.1: what is mounted by subPath does not follow", got)
	}
}

func TestServiceAccountTokens(t *testing.T) {
	t.Parallel()
	w := local.New(t)
	w.Kubectl("create", "rolebinding", "reader", "--clusterrole=view", "--serviceaccount="+w.Namespace+":default")
	ask := local.Pod("asks", `cd /var/run/secrets/kubernetes.io/serviceaccount; cat namespace; echo
		curl -s --cacert ca.crt -H "Authorization: Bearer $(cat token)" https://kubernetes.default.svc/api/v1/namespaces/$(cat namespace)/pods | grep '"name": "asks"' | head -1
		curl -s --cacert ca.crt -o /dev/null -w '%{http_code}\n' -H "Authorization: Bearer $(cat token)" https://$KUBERNETES_SERVICE_HOST:$KUBERNETES_SERVICE_PORT/api/v1/pods`)
	own := at("own", "/token", corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
		{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Audience: "vault", ExpirationSeconds: ptr.To(int64(600)), Path: "vault"}},
	}}}, `cut -d. -f2 /token/vault | tr '_-' '/+' | base64 -d 2>/dev/null | grep -o '"aud":\["vault"\]'`)
	none := local.Pod("none", `ls /var/run/secrets/kubernetes.io 2>/dev/null | wc -l`)
	none.Spec.AutomountServiceAccountToken = ptr.To(false)
	w.Create(ask, own, none)
	for _, c := range []struct{ what, pod, want string }{
		{"of the pod opens the API server by its name in DNS, as far as its roles go", "asks", w.Namespace + "\n        \"name\": \"asks\",\n403\n"},
		{"of an audience", "own", "\"aud\":[\"vault\"]\n"},
		{"that is not wanted is not there", "none", "0\n"},
	} {
		w.Run(t, c.what, func(t *testing.T, w *local.World) {
			w.UntilPhase(c.pod, corev1.PodSucceeded)
			if got := w.Logs(c.pod); got != c.want {
				t.Errorf("the log is %q, want %q", got, c.want)
			}
		})
	}
}

func TestVolumesThatCannotBeMounted(t *testing.T) {
	t.Parallel()
	w := local.New(t)
	cases := []struct{ what, want string }{
		{"a config map that does not exist", `configmap "absent" not found`},
		{"a secret that does not exist", `secret "absent" not found`},
		{"a folder of the machine that does not exist", "hostPath type check failed, /no/such/folder is not a directory"},
	}
	sources := []corev1.VolumeSource{
		{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "absent"}}},
		{Secret: &corev1.SecretVolumeSource{SecretName: "absent"}},
		{HostPath: &corev1.HostPathVolumeSource{Path: "/no/such/folder", Type: ptr.To(corev1.HostPathDirectory)}},
	}
	for i, source := range sources {
		w.Create(at(fmt.Sprintf("waits-%d", i), "/volume", source, `true`))
	}
	for i, c := range cases {
		w.Run(t, c.what+" is named", func(t *testing.T, w *local.World) {
			w.Await(c.want, "describe", "pod", fmt.Sprintf("waits-%d", i))
		})
	}
}

// Not parallel: it looks at the whole machine.
func TestMountPointsLeaveNothingOnTheMachine(t *testing.T) {
	w := local.New(t)
	places := []string{"/", "/etc", "/opt", "/usr", "/var", "/run", "/root", "/home", "/dev", "/mnt", "/srv"}
	before := map[string]string{}
	for _, place := range places {
		before[place] = list(t, place)
	}
	pod := local.Pod("mounts", `for d in $(printenv PATHS); do touch $d/f || exit 1; done; touch /opt/beside; true`)
	pod.Spec.Volumes = []corev1.Volume{{Name: "volume"}}
	main := &pod.Spec.Containers[0]
	var paths []string
	for _, place := range places {
		path := filepath.Join(place, "no-such/place")
		paths = append(paths, path)
		main.VolumeMounts = append(main.VolumeMounts, corev1.VolumeMount{Name: "volume", MountPath: path})
	}
	main.Env = []corev1.EnvVar{{Name: "PATHS", Value: strings.Join(paths, " ")}}
	w.Create(pod)
	w.UntilPhase("mounts", corev1.PodSucceeded)
	for _, place := range places {
		if after := list(t, place); after != before[place] {
			t.Errorf("%s held\n%s\nand now\n%s", place, before[place], after)
		}
	}
	if got := w.Logs("mounts"); !strings.Contains(got, "Read-only file system") {
		t.Errorf("a file beside a mount point that was missing would be lost, so that writing it is refused; the pod printed %q", got)
	}
}

// list is what a folder of the machine holds.
func list(t testing.TB, folder string) string {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return strings.Join(names, "\n")
}

func quantity(amount string) resource.Quantity { return resource.MustParse(amount) }

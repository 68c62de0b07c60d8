package manifest

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/trainyard/trainyard/internal/job"
	"github.com/trainyard/trainyard/internal/manifest/mpiplan"
)

// KeySecretName is the name of a job's Secret of keys. A part of the job's UID keeps it apart from that of an earlier job of the same
// name, whose keys the operator could not replace.
func KeySecretName(j job.Job) string {
	name := j.Name + "-ssh"
	if len(j.UID) >= 8 {
		name += "-" + string(j.UID[:8])
	}
	return name
}

// keys is the Secret, without the keys: they are generated when it is created.
func (m *Manifest) keys() *corev1.Secret {
	return &corev1.Secret{ObjectMeta: m.childMeta(m.KeySecret, m.jobLabels()), Immutable: new(true), Type: corev1.SecretTypeOpaque}
}

func fillKeys(obj Object) (err error) {
	obj.(*corev1.Secret).Data, err = mpiplan.NewKeys()
	return err
}

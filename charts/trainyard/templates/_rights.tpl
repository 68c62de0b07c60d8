{{- /* The Role in the watched namespace has a name of its own, because that may be the release's namespace, where the lease's Role is. */ -}}
{{- define "trainyard.rights" -}}
trainyard-operator{{ if .Values.watchNamespace }}-jobs{{ end }}
{{- end -}}

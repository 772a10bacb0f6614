{{/* The names are fixed: a cluster has one cairn, and "cairn roles" grants to this service account. */}}
{{- define "cairn.selector" -}}
app.kubernetes.io/name: cairn
app.kubernetes.io/component: manager
{{- end }}
{{- define "cairn.labels" -}}
{{ include "cairn.selector" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}
{{/* A shipped manifest, in the namespace of the release. */}}
{{- define "cairn.shipped" -}}
{{ .text | replace "namespace: cairn-system" (printf "namespace: %s" .namespace) | replace "serviceaccount:cairn-system:" (printf "serviceaccount:%s:" .namespace) | replace "'cairn-system/" (printf "'%s/" .namespace) }}
{{- end }}
{{- define "cairn.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ with .Values.image.digest }}@{{ . }}{{ end }}
{{- end }}

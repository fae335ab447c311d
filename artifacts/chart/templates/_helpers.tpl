{{/* The names are fixed: an APIService belongs to the cluster, so that there is one of all of this. */}}
{{- define "name" -}}
workerimage-apiserver
{{- end }}

{{- define "apiservice" -}}
v1alpha1.images.cozystack.io
{{- end }}

{{/* The Secret that holds the certificate, its key, and in ca.crt the authorities that clients trust. One that is handed over would
     be taken away by whoever had it before, so each way has its own. */}}
{{- define "servingSecret" -}}
{{ include "name" . }}-{{ ternary "tls" "serving" .Values.certificates.certManager }}
{{- end }}

{{- define "selectorLabels" -}}
app.kubernetes.io/name: {{ include "name" . }}
{{- end }}

{{- define "labels" -}}
{{ include "selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/part-of: cozystack
{{- end }}

{{/* The subject of every binding of the server's. */}}
{{- define "subjects" -}}
subjects:
- kind: ServiceAccount
  name: {{ include "name" . }}
  namespace: {{ .Release.Namespace }}
{{- end }}

{{- define "sharesHistory" -}}
{{- if and .Values.sharedHistory (gt (int .Values.replicas) 1) }}true{{ end }}
{{- end }}

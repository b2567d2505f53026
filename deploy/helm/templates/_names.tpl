{{- define "penstock.name" -}}
{{- if contains "penstock" .Release.Name -}}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{- else -}}{{ printf "%s-penstock" .Release.Name | trunc 50 | trimSuffix "-" }}{{- end -}}
{{- end }}

{{- define "penstock.selector" -}}
app.kubernetes.io/name: penstock
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "penstock.labels" -}}
{{ include "penstock.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "penstock.secret" -}}
{{- .Values.existingSecret | default (include "penstock.name" .) -}}
{{- end }}

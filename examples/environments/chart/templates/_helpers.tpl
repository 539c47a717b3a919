{{/* The labels of everything; the instance is what cleanup finds volumes by. */}}
{{- define "echo.labels" -}}
{{ include "echo.selector" . }}
app.kubernetes.io/version: {{ .Values.image.tag | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}
{{- define "echo.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}
{{- define "echo.container" -}}
name: echo
image: "{{ .Values.image.repository }}:{{ .Values.image.tag }}"
imagePullPolicy: {{ .Values.image.pullPolicy }}
ports: [{containerPort: 8080}]
readinessProbe: {httpGet: {path: /, port: 8080}, periodSeconds: 1}
envFrom: [{secretRef: {name: {{ .Release.Name }}-echo}}]
{{- with .Values.env }}
env:
  {{- range $name, $value := . }}
  - {name: {{ $name | quote }}, value: {{ $value | quote }}}
  {{- end }}
{{- end }}
{{- end }}

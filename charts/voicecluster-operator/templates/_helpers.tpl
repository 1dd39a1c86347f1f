{{- define "operator.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride -}}
{{- else if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 53 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 53 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "operator.serviceAccount" -}}
{{- .Values.serviceAccount.name | default (include "operator.fullname" .) -}}
{{- end -}}

{{/* What selects the operator's pods; never changes, since selectors cannot. */}}
{{- define "operator.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{/* Not managed-by voicecluster-operator: that is what VoiceClusters' children carry. */}}
{{- define "operator.labels" -}}
{{ include "operator.selector" . }}
app.kubernetes.io/component: operator
app.kubernetes.io/part-of: voicecluster
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* A whole image reference: list of the root and the image's values. */}}
{{- define "operator.image" -}}
{{- $root := index . 0 -}}
{{- $image := index . 1 -}}
{{- $image.repository -}}
{{- if $image.digest }}@{{ $image.digest }}{{ else }}:{{ $image.tag | default $root.Chart.AppVersion }}{{ end -}}
{{- end -}}

{{/* The same of one of our own images, which are in images.registry. */}}
{{- define "operator.ownImage" -}}
{{- with (index . 0).Values.images.registry }}{{ trimSuffix "/" . }}/{{ end -}}
{{- include "operator.image" . -}}
{{- end -}}

{{/* The name of the release's objects. */}}
{{- define "tattler.fullname" -}}
{{- $name := default "tattler" .Values.nameOverride -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 52 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 52 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* The name of objects outside of the release's namespace, where a release of the same name in another namespace may have its own. */}}
{{- define "tattler.qualified" -}}
{{- printf "%s.%s" .Release.Namespace (include "tattler.fullname" .) -}}
{{- end -}}

{{/* Labels that select the pod. Values cannot change them, because a StatefulSet's selector is immutable. */}}
{{- define "tattler.selector" -}}
app.kubernetes.io/name: tattler
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "tattler.labels" -}}
{{ include "tattler.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{- range list "app.kubernetes.io/name" "app.kubernetes.io/instance" "app.kubernetes.io/managed-by" "app.kubernetes.io/version" "app.kubernetes.io/component" "helm.sh/chart" }}
{{- if hasKey $.Values.commonLabels . }}{{ fail (printf "commonLabels: the chart itself sets %s: leave it out" .) }}{{ end }}
{{- end }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* Metadata of an object: (list ROOT SUFFIX LABELS ANNOTATIONS NAMESPACE NAME), the last four optional. NAMESPACE is "-" for none. Outside
of the release's namespace, the name is qualified. */}}
{{- define "tattler.metadata" -}}
{{- $root := index . 0 -}}
{{- $labels := dict -}}{{- $annotations := dict -}}{{- $namespace := $root.Release.Namespace -}}
{{- if gt (len .) 2 }}{{ $labels = index . 2 | default dict }}{{ end -}}
{{- if gt (len .) 3 }}{{ $annotations = index . 3 | default dict }}{{ end -}}
{{- if gt (len .) 4 }}{{ $namespace = index . 4 | default $namespace }}{{ end -}}
{{- $base := eq $namespace $root.Release.Namespace | ternary "tattler.fullname" "tattler.qualified" -}}
{{- $name := printf "%s%s" (include $base $root) (index . 1) -}}
{{- if gt (len .) 5 }}{{ $name = index . 5 }}{{ end -}}
name: {{ $name }}
{{- if ne $namespace "-" }}
namespace: {{ $namespace }}
{{- end }}
labels:
  {{- $all := include "tattler.labels" $root | fromYaml }}
  {{- toYaml (mergeOverwrite $all (deepCopy $labels)) | nindent 2 }}
{{- with mergeOverwrite (deepCopy $root.Values.commonAnnotations) (deepCopy $annotations) }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "tattler.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "tattler.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "tattler.redactionSecret" -}}
{{- default (printf "%s-redaction-key" (include "tattler.fullname" .)) .Values.redactionKey.existingSecret -}}
{{- end -}}

{{- define "tattler.webSecret" -}}
{{- default (printf "%s-web-tls" (include "tattler.fullname" .)) .Values.web.tls.existingSecret -}}
{{- end -}}

{{/* A number of bytes, of a quantity as in Kubernetes or of a size of the configuration; nothing if it is neither. */}}
{{- define "tattler.bytes" -}}
{{- $text := trimSuffix "B" (kindIs "float64" . | ternary (. | int64) . | toString) -}}
{{- $unit := regexFind "[A-Za-z]*$" $text -}}
{{- $scale := dict "" 1 "k" 1e3 "K" 1e3 "Ki" 1024 "M" 1e6 "Mi" 1048576 "G" 1e9 "Gi" 1073741824 "T" 1e12 "Ti" 1099511627776 "P" 1e15 "Pi" 1125899906842624 -}}
{{- if and (hasKey $scale $unit) (regexMatch "^[0-9]+(\\.[0-9]+)? *[A-Za-z]*$" $text) -}}
{{- printf "%.0f" (mulf (trimSuffix $unit $text | trim | float64) (get $scale $unit)) -}}
{{- end -}}
{{- end -}}

{{/* persistence.size, which must be three times the limit of the journal: docs/operations.md says why. */}}
{{- define "tattler.volumeSize" -}}
{{- $size := .Values.persistence.size -}}
{{- $limit := (.Values.config.journal.retain | default dict).size -}}
{{- if kindIs "invalid" $limit }}{{ $limit = "1Gi" }}{{ end -}}
{{- $has := include "tattler.bytes" $size -}}
{{- $needs := include "tattler.bytes" $limit -}}
{{- if not $has }}{{ fail (printf "persistence.size: %v is not a size such as 30Gi" $size) }}{{ end -}}
{{- if not $needs }}{{ fail (printf "config.journal.retain.size: %v is not a size such as 10Gi" $limit) }}{{ end -}}
{{- if lt (float64 $has) (mulf 3 (float64 $needs)) -}}
{{- fail (printf "persistence.size is %v, and config.journal.retain.size is %v: the volume must be at least three times as large as the journal's limit (docs/operations.md, Sizing): set persistence.size to %.0fMi or more, or lower the limit" $size $limit (ceil (divf (mulf 3 (float64 $needs)) 1048576))) -}}
{{- end -}}
{{- $size -}}
{{- end -}}

{{- define "tattler.claim" -}}
{{- default (printf "%s-journal" (include "tattler.fullname" .)) .Values.persistence.existingClaim -}}
{{- end -}}

{{/* The configuration: .Values.config and, with web.enabled, defaults for what config.web does not set. */}}
{{- define "tattler.config" -}}
{{- $config := deepCopy .Values.config -}}
{{- if .Values.web.enabled -}}
{{- $hosts := list -}}
{{- if .Values.ingress.enabled }}{{ range .Values.ingress.hosts }}{{ $hosts = append $hosts .host }}{{ end }}{{ end -}}
{{- if .Values.httpRoute.enabled }}{{ $hosts = concat $hosts .Values.httpRoute.hostnames }}{{ end -}}
{{- $web := dict "address" ":8443" "tokens" true "audiences" (list "tattler") "tls" (dict "cert" "/etc/tattler/web/tls.crt" "key" "/etc/tattler/web/tls.key") -}}
{{- if $hosts }}{{ $_ := set $web "hosts" (uniq $hosts) }}{{ end -}}
{{- if .Values.web.clientCA.existingConfigMap }}{{ $_ := set $web "clientCA" (printf "/etc/tattler/client-ca/%s" .Values.web.clientCA.key) }}{{ end -}}
{{- $_ := set $config "web" (mergeOverwrite $web (default dict $config.web)) -}}
{{- if not $config.web.tokens }}{{ $_ := unset $config.web "audiences" }}{{ end -}}
{{- end -}}
{{- toYaml $config -}}
{{- end -}}

{{/* The port of an address, such as 8080 of ":8080"; nothing for a loopback address. */}}
{{- define "tattler.port" -}}
{{- if not (regexMatch "^(127\\.|localhost:|\\[::1\\]:)" .) -}}
{{- regexFind "[0-9]+$" . -}}
{{- end -}}
{{- end -}}

{{- define "tattler.httpPort" -}}
{{- required "config.listen.address must be :PORT or an address that the kubelet reaches: the probes need it" (include "tattler.port" .Values.config.listen.address) -}}
{{- end -}}

{{/* The port of the web page; nothing if other machines cannot reach it. */}}
{{- define "tattler.webPort" -}}
{{- $web := (include "tattler.config" . | fromYaml).web | default dict -}}
{{- include "tattler.port" ($web.address | default "127.0.0.1:0") -}}
{{- end -}}

{{/* Whether viewers of the web page are authenticated: then the daemon needs the rights to create token and access reviews. */}}
{{- define "tattler.authenticates" -}}
{{- $web := (include "tattler.config" . | fromYaml).web | default dict -}}
{{- if and $web.address (or $web.tokens $web.clientCA ($web.requestHeader | default dict).clientCA) -}}
true
{{- end -}}
{{- end -}}

{{/* The pod's annotations. The checksum of the configuration restarts the pod after a change. */}}
{{- define "tattler.podAnnotations" -}}
{{- range $key := list "commonAnnotations" "podAnnotations" }}
{{- if hasKey (get $.Values $key) "checksum/config" }}{{ fail (printf "%s: the chart itself sets checksum/config: use another name" $key) }}{{ end }}
{{- end -}}
{{- $all := mergeOverwrite (deepCopy .Values.commonAnnotations) .Values.podAnnotations -}}
{{- set $all "checksum/config" (include "tattler.config" . | sha256sum) | toYaml -}}
{{- end -}}

{{/* GOMEMLIMIT: nine tenths of the memory limit, in whole MiB. */}}
{{- define "tattler.goMemLimit" -}}
{{- $limit := ((.Values.resources | default dict).limits | default dict).memory | default "" -}}
{{- if .Values.goMemLimit -}}
{{- .Values.goMemLimit -}}
{{- else if $limit -}}
{{- $bytes := include "tattler.bytes" $limit -}}
{{- if not $bytes }}{{ fail (printf "resources.limits.memory: %v is not a number with a unit, such as 512Mi: set goMemLimit" $limit) }}{{ end -}}
{{- if lt (float64 $bytes) 33554432.0 }}{{ fail (printf "resources.limits.memory: %v is less than 32Mi, and Tattler needs more: add a unit, such as %vMi" $limit $limit) }}{{ end -}}
{{- printf "%dMiB" (divf (mulf (float64 $bytes) 9) 10485760 | floor | int64) -}}
{{- end -}}
{{- end -}}

{{- define "tattler.image" -}}
{{- if regexMatch "^[^/]*[.:]" .Values.image.repository }}{{ fail (printf "image.repository: %s begins with a registry, which belongs in image.registry" .Values.image.repository) }}{{ end -}}
{{- $name := prepend (list .Values.image.repository) ((.Values.global).imageRegistry | default .Values.image.registry) | compact | join "/" -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" $name .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" $name (default .Chart.AppVersion .Values.image.tag) -}}
{{- end -}}
{{- end -}}

{{/* The labels of the pod. Values cannot change those that select it. */}}
{{- define "tattler.podLabels" -}}
{{- range $key, $_ := include "tattler.selector" . | fromYaml }}
{{- if hasKey $.Values.podLabels $key }}{{ fail (printf "podLabels: the chart itself sets %s: leave it out" $key) }}{{ end }}
{{- end -}}
{{- merge (include "tattler.selector" . | fromYaml) .Values.podLabels .Values.commonLabels | toYaml -}}
{{- end -}}

{{/* Whether only the cluster reaches the Service. */}}
{{- define "tattler.internal" -}}
{{- if eq .Values.service.type "ClusterIP" }}true{{ end -}}
{{- end -}}

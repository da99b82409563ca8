{{/* The numbers of the nodes: 0 1 2 3 4 5. */}}
{{- define "shardqa.numbers" -}}
{{ untilStep 0 (int (mul .Values.shards (add 1 .Values.replicas))) 1 | join " " }}
{{- end }}
{{/* The addresses of the nodes, with commas. */}}
{{- define "shardqa.nodes" -}}
{{- $nodes := list -}}
{{- range untilStep 0 (int (mul .Values.shards (add 1 .Values.replicas))) 1 -}}
{{- $nodes = append $nodes (printf "shardqa-node-%d.shardqa-nodes:6379" .) -}}
{{- end -}}
{{ join "," $nodes }}
{{- end }}

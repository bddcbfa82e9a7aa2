# No pod, and no pod template, may have a privileged container.
package privileged

violations contains text if {
	some spec in specs
	some kind in ["containers", "initContainers", "ephemeralContainers"]
	some container in spec[kind]
	container.securityContext.privileged
	text := sprintf("container %s is privileged", [container.name])
}

# A path that an object does not have adds nothing to the set.
specs contains input.object.spec

specs contains input.object.spec.template.spec

specs contains input.object.spec.jobTemplate.spec.template.spec

-- Health of a VoiceCluster or VoiceRegion for Argo CD, from its conditions.
local health = { status = "Progressing", message = "Waiting for the operator" }

if obj.spec ~= nil and obj.spec.paused == true then
  health.status = "Suspended"
  health.message = "Paused: set spec.paused to false to go on"
  return health
end

if obj.status == nil or obj.status.conditions == nil then
  return health
end

if obj.metadata.generation ~= nil and obj.status.observedGeneration ~= obj.metadata.generation then
  health.message = "The operator has not seen this generation yet"
  return health
end

local found = {}
for _, condition in ipairs(obj.status.conditions) do
  found[condition.type] = condition
end

local function is(kind, status)
  return found[kind] ~= nil and found[kind].status == status
end

if is("Stalled", "True") then
  health.status = "Degraded"
  health.message = found.Stalled.message
elseif is("Reconciling", "True") then
  health.message = found.Reconciling.message
elseif is("Ready", "True") then
  health.status = "Healthy"
  health.message = found.Ready.message
elseif is("Ready", "False") then
  health.status = "Degraded"
  health.message = found.Ready.message
end

return health

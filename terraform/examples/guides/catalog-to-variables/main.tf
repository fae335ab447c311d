terraform {
  required_providers {
    workerimage = {
      source = "cozystack/workerimage"
    }
  }
}

variable "schematic" {
  type        = string
  default     = "edge"
  description = "Schematic of the pools. It must be in the catalog."
}

data "workerimage_worker_image_catalog" "declared" {
  declared_only = true
}

locals {
  # The versions of each schematic, the newest first: the order of the entries.
  versions = {
    for entry in data.workerimage_worker_image_catalog.declared.entries : entry.schematic_id => entry.version...
    if entry.status.phase != "Invalid"
  }
}

output "versions" {
  description = "What a module or a form may offer."
  value       = local.versions
}

output "pool_image" {
  description = "The schematic that was asked for, at the newest version that is declared."
  value = {
    schematic_id = var.schematic
    version      = local.versions[var.schematic][0]
  }

  precondition {
    condition     = contains(keys(local.versions), var.schematic)
    error_message = "The catalog has ${join(", ", keys(local.versions))}, and not ${var.schematic}."
  }
}

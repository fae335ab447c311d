terraform {
  required_providers {
    workerimage = {
      source = "cozystack/workerimage"
    }
  }
}

# Everything can come from the environment, such as KUBE_CONFIG_PATH and KUBE_CTX.
provider "workerimage" {
}

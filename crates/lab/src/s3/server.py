# A store that speaks S3, on a port of its own: moto, which checks signatures with the code of
# botocore. Its only user may do everything; all others are refused. Ends with its standard input.

import os
import sys

os.environ["AWS_ACCESS_KEY_ID"] = os.environ["AWS_SECRET_ACCESS_KEY"] = "nobody"
os.environ["AWS_DEFAULT_REGION"] = "us-east-1"

import json
import logging

import boto3
from moto import settings
from moto.s3.models import s3_backends
from moto.server import ThreadedMotoServer

BUCKET = "snapshots"

logging.getLogger("werkzeug").setLevel(logging.ERROR)
server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
_, port = server.get_host_and_port()
endpoint = f"http://127.0.0.1:{port}"


def user(name, effect):
    iam = boto3.client("iam", endpoint_url=endpoint)
    iam.create_user(UserName=name)
    policy = {
        "Version": "2012-10-17",
        "Statement": [{"Effect": effect, "Action": "s3:*", "Resource": "*"}],
    }
    iam.put_user_policy(
        UserName=name, PolicyName="all", PolicyDocument=json.dumps(policy)
    )
    key = iam.create_access_key(UserName=name)["AccessKey"]
    return key["AccessKeyId"], key["SecretAccessKey"]


boto3.client("s3", endpoint_url=endpoint).create_bucket(Bucket=BUCKET)
friend, stranger = user("friend", "Allow"), user("stranger", "Deny")
settings.INITIAL_NO_AUTH_ACTION_COUNT = 0
print(endpoint, BUCKET, *friend, *stranger, flush=True)

# What is in the store, seen from the inside.
for line in sys.stdin:
    bucket = s3_backends["123456789012"]["aws"].get_bucket(BUCKET)
    if line.strip() == "objects":
        found = [(key, object.size) for key, object in bucket.keys.items()]
    else:
        found = [(upload.key_name, len(upload.parts)) for upload in bucket.multiparts.values()]
    for name, size in sorted(found):
        print(name, size)
    print(".", flush=True)

os._exit(0)

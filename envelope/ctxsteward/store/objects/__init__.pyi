from .file import FileObjects as FileObjects, Leftover as Leftover
from .memory import MemoryObjects as MemoryObjects
from .port import (
    ObjectInfo as ObjectInfo,
    ObjectStore as ObjectStore,
    Patience as Patience,
    PutOutcome as PutOutcome,
    folders_in as folders_in,
    is_there as is_there,
    list_twice as list_twice,
    put_once as put_once,
)
from .postgres import PostgresObjects as PostgresObjects
from .s3 import S3Objects as S3Objects
